# SPDX-License-Identifier: Apache-2.0
"""Kafka for tests: topics, messages in, messages out, offsets. A connection a call, unless said otherwise."""

import collections
import concurrent.futures
import contextlib
import threading
import time

from support import venv

venv.enter()

# pylint: disable=wrong-import-position,import-error
import confluent_kafka
from confluent_kafka import admin

from support.place import PATIENCE_S, joined, until

Message = collections.namedtuple("Message", "topic partition offset key value time_ms appended_ms")
_LARGEST = 8 * 1024 * 1024
_BATCH = 5000
_ERRORS = confluent_kafka.KafkaError
_PASSING = {_ERRORS._TRANSPORT, _ERRORS._TIMED_OUT, _ERRORS._ALL_BROKERS_DOWN, _ERRORS._WAIT_COORD,  # pylint: disable=protected-access
            _ERRORS.NOT_LEADER_FOR_PARTITION, _ERRORS.LEADER_NOT_AVAILABLE, _ERRORS.REQUEST_TIMED_OUT,
            _ERRORS.COORDINATOR_NOT_AVAILABLE, _ERRORS.COORDINATOR_LOAD_IN_PROGRESS, _ERRORS.NOT_COORDINATOR,
            _ERRORS.UNKNOWN_TOPIC_OR_PART,
            # A broker that has just started does not know all topics yet.
            _ERRORS._UNKNOWN_TOPIC, _ERRORS._UNKNOWN_PARTITION}  # pylint: disable=protected-access


class Kafka:
    """One cluster by its brokers' addresses."""

    def __init__(self, brokers, properties=None):
        self.brokers = brokers
        self._settings = {"bootstrap.servers": brokers, "log_level": 0, **(properties or {})}
        self._admin = None

    def admin(self):
        """The client for topics and groups; one for all calls."""
        if self._admin is None:
            self._admin = admin.AdminClient(self._settings)
        return self._admin

    # ---- topics ----

    def topics(self):
        """{name: number of partitions} of all but Kafka's own."""
        listed = _again(lambda: self.admin().list_topics(timeout=PATIENCE_S)).topics
        return {name: len(topic.partitions) for name, topic in listed.items() if not name.startswith("__")}

    def create(self, topic, partitions=1, replication=1, **settings):
        """Makes a topic and waits until each partition has a leader; settings: their names with _ for dots."""
        config = {name.replace("_", "."): str(value) for name, value in settings.items()}
        new = admin.NewTopic(topic, num_partitions=partitions, replication_factor=replication, config=config)
        _done(self.admin().create_topics([new], operation_timeout=PATIENCE_S, request_timeout=PATIENCE_S))
        until(lambda: self._has_leaders(topic, partitions), f"{topic} has leaders")

    def extend(self, topic, partitions):
        """Gives a topic more partitions, so many in all, and waits until each has a leader."""
        _done(self.admin().create_partitions([admin.NewPartitions(topic, partitions)], operation_timeout=PATIENCE_S,
                                             request_timeout=PATIENCE_S))
        until(lambda: self._has_leaders(topic, partitions), f"{topic} has leaders")

    def _has_leaders(self, topic, partitions):
        listed = _again(lambda: self.admin().list_topics(topic, timeout=PATIENCE_S)).topics[topic].partitions
        return len(listed) == partitions and all(one.leader >= 0 for one in listed.values())

    def delete(self, topics):
        """Removes topics; of those that are not there it says nothing."""
        topics = list(topics)
        if not topics:
            return
        for future in self.admin().delete_topics(topics, operation_timeout=PATIENCE_S).values():
            with contextlib.suppress(confluent_kafka.KafkaException):
                _result(future, "removing topics")

    def settings_of(self, topic):
        """{name: value} of a topic's configuration."""
        resource = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, topic)
        (future,) = self.admin().describe_configs([resource]).values()
        return {name: entry.value for name, entry in _result(future, f"the settings of {topic}").items()}

    def change_settings(self, topic, **settings):
        """Sets some of a topic's configuration, names with _ for dots, and waits until the broker shows it."""
        wanted = {name.replace("_", "."): str(value) for name, value in settings.items()}
        resource = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, topic)
        for name, value in wanted.items():
            resource.add_incremental_config(admin.ConfigEntry(name, value, incremental_operation=admin.AlterConfigOpType.SET))
        _done(self.admin().incremental_alter_configs([resource]))
        until(lambda: wanted.items() <= self.settings_of(topic).items(), f"{topic} has {wanted}", 4 * PATIENCE_S)

    def set_password(self, user, password):
        """Sets a user's password of SCRAM-SHA-256."""
        mechanism = admin.ScramCredentialInfo(admin.ScramMechanism.SCRAM_SHA_256, 4096)
        _done(self.admin().alter_user_scram_credentials([admin.UserScramCredentialUpsertion(user, mechanism, password.encode())]))

    def allow_only(self, topic, user, operations):
        """Lets a user do these with a topic, and nobody anything else."""
        _done(self.admin().create_acls([
            admin.AclBinding(admin.ResourceType.TOPIC, topic, admin.ResourcePatternType.LITERAL, f"User:{user}", "*", admin.AclOperation[name],
                             admin.AclPermissionType.ALLOW) for name in operations]))

    def allow_all(self, topic):
        """Lets everybody do everything with it, as brokers do with a topic of which nothing is said."""
        _done(self.admin().delete_acls([admin.AclBindingFilter(
            admin.ResourceType.TOPIC, topic, admin.ResourcePatternType.LITERAL, None, None, admin.AclOperation.ANY, admin.AclPermissionType.ANY)]))

    def trim(self, topic, offsets):
        """Deletes what lies below an offset: {partition: offset}."""
        _done(self.admin().delete_records(
            [confluent_kafka.TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]))

    # ---- messages ----

    def produce(self, topic, messages, headers=None, **properties):
        """Sends messages and waits until all are written: their offsets, in order.

        messages: the bytes of each, or (key, bytes), or (key, bytes, partition); headers: of each of them; properties:
        the producer's, their names with _ for dots. One with a transactional_id sends them in one transaction."""
        producer = confluent_kafka.Producer({
            **self._settings, "enable.idempotence": True, "message.max.bytes": _LARGEST, "linger.ms": 5,
            "message.timeout.ms": int(4000 * PATIENCE_S), "transaction.timeout.ms": int(4000 * PATIENCE_S),
            **{name.replace("_", "."): value for name, value in properties.items()}})
        offsets, failed = [], []
        if "transactional_id" in properties:
            producer.init_transactions(4 * PATIENCE_S)
            producer.begin_transaction()

        def delivered(number):
            def report(error, message):
                if error is not None:
                    failed.append(error)
                else:
                    offsets[number] = message.offset()
            return report

        for number, message in enumerate(messages):
            key, value, *where = message if isinstance(message, tuple) else (None, message)
            offsets.append(None)
            more = {"headers": headers, **({"partition": where[0]} if where else {})}
            while True:
                try:
                    producer.produce(topic, value, key, on_delivery=delivered(number), **more)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        left = producer.flush(4 * PATIENCE_S)
        if "transactional_id" in properties:
            producer.commit_transaction(4 * PATIENCE_S)
        assert not failed and left == 0, f"{topic}: {failed[:3]}, {left} messages are not delivered"
        return offsets

    @contextlib.contextmanager
    def reader(self, **properties):
        """A confluent_kafka.Consumer that belongs to no group and begins where it is told."""
        consumer = confluent_kafka.Consumer({
            **self._settings, "group.id": "none", "enable.auto.commit": False, "enable.partition.eof": True,
            "auto.offset.reset": "error", "fetch.wait.max.ms": 20, "fetch.message.max.bytes": _LARGEST,
            "queued.max.messages.kbytes": 65536, **properties})
        try:
            yield consumer
        finally:
            _close(consumer)

    def extents(self, topic):
        """{partition: (first offset, next offset)}; {} of a topic that is not there."""
        partitions = self.topics().get(topic, 0)

        def ask():
            # One that does not know a partition at first may not come to know it: each try has a reader of its own.
            with self.reader() as consumer:
                return {number: consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, number),
                                                               timeout=PATIENCE_S) for number in range(partitions)}
        return _again(ask)

    def count(self, topic):
        """How many offsets a topic has from its first to its next."""
        return sum(last - first for first, last in self.extents(topic).values())

    def consume(self, topic, since=None):
        """All messages of a topic from its start (or since {partition: offset}) to its end as it is now.

        Those of a partition come in the order of their offsets."""
        return list(self.stream(topic, since))

    def stream(self, topic, since=None):
        """The same, one by one."""
        since = since or {}
        ends = {}
        begin = []
        for partition, (first, last) in self.extents(topic).items():
            first = max(first, since.get(partition, first))
            if first < last:
                ends[partition] = last
                begin.append(confluent_kafka.TopicPartition(topic, partition, first))
        if not begin:
            return
        with self.reader() as consumer:
            consumer.assign(begin)
            while ends:
                first = consumer.poll(2 * PATIENCE_S)
                assert first is not None, f"{topic}: nothing came in time of partitions {sorted(ends)}"
                # A batch is waited for until it is full: one that does not wait takes what is there.
                yield from self._of_batch([first, *consumer.consume(_BATCH, timeout=0)], ends)

    @staticmethod
    def _of_batch(batch, ends):
        for message in batch:
            error, partition = message.error(), message.partition()
            if error is not None:
                # Behind the last message there may be offsets without one: compacted, or marks of transactions.
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error  # pylint: disable=protected-access
                ends.pop(partition, None)
                continue
            if partition not in ends:
                continue
            if message.offset() < ends[partition]:
                kind, time_ms = message.timestamp()
                yield Message(message.topic(), partition, message.offset(), message.key(), message.value(), time_ms,
                              time_ms if kind == confluent_kafka.TIMESTAMP_LOG_APPEND_TIME else 0)
            if message.offset() + 1 >= ends[partition]:
                del ends[partition]

    def committed(self, group, topic):
        """{partition: offset} that a group has committed."""
        asked = [confluent_kafka.TopicPartition(topic, number) for number in range(self.topics().get(topic, 0))]
        with self.reader(**{"group.id": group}) as consumer:
            answer = _again(lambda: consumer.committed(asked, timeout=PATIENCE_S))
        return {one.partition: one.offset for one in answer if one.offset >= 0}

    def members(self, group):
        """{member id: sorted partitions} of a group, as (topic, partition); {} of one that is not there."""
        (future,) = self.admin().describe_consumer_groups([group], request_timeout=PATIENCE_S).values()
        try:
            described = _result(future, f"the members of {group}")
        except confluent_kafka.KafkaException:
            return {}
        return {member.member_id: sorted((one.topic, one.partition) for one in member.assignment.topic_partitions)
                for member in described.members}


def _result(future, what):
    """What a future gives: librdkafka may wait for longer than it was asked to."""
    try:
        return future.result(timeout=4 * PATIENCE_S)
    except concurrent.futures.TimeoutError:
        raise AssertionError(f"Kafka did not answer within {4 * PATIENCE_S} s: {what}") from None


def _close(consumer):
    """Ends a consumer, which waits in librdkafka, where nothing ends it."""
    closing = threading.Thread(target=consumer.close, daemon=True)
    closing.start()
    joined(closing, "the closing of a consumer", 4 * PATIENCE_S)


def _again(ask):
    """What ask() gives; asked again for a while when a connection broke, or a partition has just moved."""
    end = time.monotonic() + 2 * PATIENCE_S
    while True:
        try:
            return ask()
        except confluent_kafka.KafkaException as why:
            if time.monotonic() > end or why.args[0].code() not in _PASSING:
                raise
        time.sleep(0.1)  # it is the broker that has to change


def _done(futures):
    for what, future in futures.items():
        _result(future, what)
