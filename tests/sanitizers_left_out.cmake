# SPDX-License-Identifier: Apache-2.0
# What runs under no sanitizer, and why. Read by sanitizers.cmake; README.md repeats the rows.

foreach(sanitizer asan tsan)
  weir_leave_out(${sanitizer} "reads the tree or asks servers; no program of weir's runs in it"
    unit.test_architecture unit.test_architecture_faults unit.test_documents unit.test_documents_faults unit.test_sanitizers
    unit.test_schema_columns
    integration.test_deploy integration.test_deploy_manifests integration.test_velocity integration.test_velocity_callers)
  weir_leave_out(${sanitizer} "a package of programs that ask for a sanitizer's library is none; their own tests run them"
    integration.test_newcomer integration.test_package)
  weir_leave_out(${sanitizer} "measures memory, most of which would be the sanitizer's"
    integration.test_ceiling)
  weir_leave_out(${sanitizer} "the browser's part; the daemon answers the same requests in `integration.test_archiver_api`"
    integration.test_archiver_page integration.test_archiver_page_axe integration.test_archiver_page_days
    integration.test_archiver_page_time integration.test_archiver_page_use integration.test_archiver_page_whole)
  weir_leave_out(${sanitizer} "the browser's part; `integration.test_backtest` runs the same program"
    integration.test_backtest_page)
  weir_leave_out(${sanitizer} "minutes of load on the same daemons as `integration.test_cluster_limiter` and its neighbours"
    integration.test_bus_kafka_brokers integration.test_cluster_collector_outage integration.test_cluster_cut_off
    integration.test_cluster_equal integration.test_cluster_gap integration.test_cluster_kinds
    integration.test_cluster_limiter_moves integration.test_cluster_recreated integration.test_cluster_servers
    integration.test_cluster_state integration.test_cluster_whole)
  weir_leave_out(${sanitizer} "types an operator's commands for two minutes; each command and daemon has tests of its own"
    integration.test_runbook)
  weir_leave_out(${sanitizer} "waits for the clock for minutes; `integration.test_follow` and `unit.test_source_rotation` read rotated files"
    integration.test_rotation)
  weir_leave_out(${sanitizer} "cuts servers off for minutes; `integration.test_bus_kafka` and `integration.test_store_mysql` run the same code"
    integration.test_bus_kafka_connections integration.test_bus_kafka_outage integration.test_check_bound
    integration.test_store_mysql_faults)
endforeach()

weir_leave_out(tsan "one thread, which reads what it is given"
  fuzz.*
  unit.test_bucket* unit.test_config unit.test_footprint unit.test_format* unit.test_help unit.test_json* unit.test_msgpack_json unit.test_shard*
  unit.test_source_changes unit.test_source_named unit.test_source_property unit.test_source_rotation unit.test_store_sqlite*
  unit.test_table unit.test_time_*
  integration.test_decode integration.test_files integration.test_formats integration.test_forward_lines integration.test_generate integration.test_import integration.test_out_of_order integration.test_policy_tests
  integration.test_progress integration.test_reference integration.test_resp integration.test_right_client integration.test_top
  integration.test_validate)
weir_leave_out(tsan "processes that are killed and started again; each has the threads of `unit.test_bus_local`"
  unit.test_bus_local_crash unit.test_bus_local_recovery)
foreach(sanitizer asan tsan)
  weir_leave_out(${sanitizer} "starts Java servers again and again; `unit.test_remote`, `unit.test_webhdfs_json` and `integration.test_source_s3` run the same code"
    integration.test_webhdfs integration.test_webhdfs_failover)
  weir_leave_out(${sanitizer} "restarts RabbitMQ for a minute; `integration.test_source_nats` and `unit.test_source_queue` run the same base"
    integration.test_source_amqp)
endforeach()
weir_leave_out(tsan "the thread is that of `unit.test_remote`"
  integration.test_source_s3 unit.test_remote_many)
weir_leave_out(tsan "the threads are those of `integration.test_archiver_store`, `integration.test_follow`, `integration.test_cluster_limiter` or `integration.test_subscribe`"
  integration.test_archive_off integration.test_archive_shadow integration.test_archive_sql integration.test_archiver_api_guards
  integration.test_cluster_archive_shadow integration.test_cluster_bad_input integration.test_cluster_check integration.test_cluster_clock integration.test_cluster_marks
  integration.test_cloud_lists integration.test_cluster_overrides integration.test_cluster_policy integration.test_cluster_shadow integration.test_doctor
  integration.test_explain integration.test_faults integration.test_forget_cluster integration.test_forget_local
  integration.test_ipset integration.test_journal integration.test_overrides_local integration.test_run_gateways
  integration.test_setup integration.test_source_nats integration.test_shadow_until integration.test_state
  integration.test_subscribe_haproxy integration.test_subscribe_nft integration.test_subscribe_nginx
  integration.test_subscribe_redis integration.test_webhook)
weir_leave_out(tsan "the threads are those of `integration.test_checks`, `unit.test_owners` and `unit.test_worker_checks`"
  integration.test_check_cluster integration.test_check_envoy integration.test_check_throttle integration.test_resp_clients)
foreach(sanitizer asan tsan)
  weir_leave_out(${sanitizer} "asks by other programs what `integration.test_check_http` and `integration.test_resp` ask themselves"
    integration.test_check_apache integration.test_check_caddy integration.test_check_clients integration.test_check_haproxy
    integration.test_check_nginx integration.test_check_traefik integration.test_check_varnish)
endforeach()
