# SPDX-License-Identifier: Apache-2.0
# What takes long starts first, or it would run alone at the end. Seconds, roughly, of several tests at a time on two
# cores; what is not here takes less than half a minute. Those of chaos and of browsers are above them all. And what waits
# for nearly all of its time: twice as many of these run at a time.

# weir_takes(SECONDS TEST...)
get_directory_property(tests TESTS)
function(weir_takes seconds)
  foreach(test ${ARGN})
    if(test IN_LIST tests)
      set_tests_properties(${test} PROPERTIES COST ${seconds})
    else()
      message(FATAL_ERROR "tests/costs.cmake: there is no test ${test}")
    endif()
  endforeach()
endfunction()

if(Python3_FOUND)
  weir_takes(200 integration.test_archiver_store integration.test_check_cluster integration.test_cluster_bad_input
    integration.test_cluster_equal integration.test_cluster_limiter_moves integration.test_source_kafka)
  weir_takes(130 integration.test_archiver_api integration.test_bus_kafka integration.test_cluster_limiter
    integration.test_cluster_recreated integration.test_cluster_whole integration.test_doctor integration.test_subscribe
    integration.test_subscribe_redis)
  weir_takes(90 conformance.test_explain integration.test_cluster_gap integration.test_overrides_local
    integration.test_source_redis integration.test_source_s3 integration.test_webhook)
  weir_takes(60 conformance.test_oracle_data conformance.test_sources_equal integration.test_cluster_servers
    integration.test_faults integration.test_follow integration.test_push_http integration.test_reserve
    integration.test_run_gateways integration.test_store_mysql)
  weir_takes(40 conformance.test_oracle_overrides conformance.test_oracle_random conformance.test_seed_mariadb
    integration.test_check_envoy integration.test_cloud_lists integration.test_cluster_archive_shadow
    integration.test_explain integration.test_generate
    integration.test_reference integration.test_shadow_until integration.test_source_nats)
endif()
weir_takes(60 unit.test_bus_local_crash unit.test_collector unit.test_remote_many unit.test_source_property
  unit.test_worker_faults)

set_tests_properties(unit.test_balance unit.test_collector unit.test_forward_server unit.test_lag unit.test_policies
  unit.test_source_property unit.test_verified_hosts unit.test_worker_assignment unit.test_worker_faults
  PROPERTIES PROCESSORS 1)
