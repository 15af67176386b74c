/* SPDX-License-Identifier: Apache-2.0 */
/* Files that begin alike: each is read, though copies of a file are not. */
#include "tests/unit/rotation_fixture.h"

/* A quiet day's file is the banner alone; those after it have more. */
static void files_that_begin_alike_are_told_apart(void **state)
{
	(void)state;
	const char *config;
	FOR_BOTH(config)
	{
		struct reader reader;
		begin();
		log_append("access.log", "banner\n");
		reader_open(&reader, config, false, memory);
		reader_expect(&reader, "banner\n");
		log_rename("access.log", "access.log.1");
		log_append("access.log", "banner\n1\n");
		reader_expect(&reader, "banner\nbanner\n1\n");
		log_rename("access.log.1", "access.log.2");
		log_rename("access.log", "access.log.1");
		log_append("access.log", "banner\n2\n");
		reader_expect(&reader, "banner\nbanner\n1\nbanner\n2\n");
		stop(&reader);
		/* The same while nobody reads. */
		log_rename("access.log.2", "access.log.3");
		log_rename("access.log.1", "access.log.2");
		log_rename("access.log", "access.log.1");
		log_append("access.log", "banner\n3\n");
		reader_open(&reader, config, false, memory);
		reader_expect(&reader, "banner\n3\n");
		reader_close(&reader);
		end();
	}
}

/* Those that were there before the first start are known, and their like is none of them. */
static void files_that_begin_as_older_ones_did_are_read(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	log_append("access.log.1", "banner\n");
	log_append("access.log", "old\n");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "old\n");
	log_rename("access.log.1", "access.log.2");
	log_rename("access.log", "access.log.1");
	log_append("access.log", "banner\n1\n");
	reader_expect(&reader, "old\nbanner\n1\n");
	reader_close(&reader);
	end();
}

/* It had one byte when it was seen first, which most files begin with. */
static void a_file_is_known_by_all_that_was_read_of_it(void **state)
{
	(void)state;
	const char *config;
	FOR_BOTH(config)
	{
		struct reader reader;
		begin();
		log_append("access.log", "{");
		reader_open(&reader, config, false, memory);
		reader_until_incarnation(&reader, memory, 1);
		reader_close(&reader);
		log_append("access.log", "a line that is longer than all of the next file}\n");
		reader_open(&reader, config, false, memory);
		reader_expect(&reader, "{a line that is longer than all of the next file}\n");
		log_rename("access.log", "access.log.1");
		log_append("access.log", "{1}\n");
		reader_expect(&reader, "{a line that is longer than all of the next file}\n{1}\n");
		log_rename("access.log.1", "access.log.2");
		log_rename("access.log", "access.log.1");
		log_append("access.log", "{2}\n");
		reader_expect(&reader, "{a line that is longer than all of the next file}\n{1}\n{2}\n");
		reader_close(&reader);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_begin_alike_are_told_apart),
		cmocka_unit_test(files_that_begin_as_older_ones_did_are_read),
		cmocka_unit_test(a_file_is_known_by_all_that_was_read_of_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
