/* SPDX-License-Identifier: Apache-2.0 */
/* What root makes in another user's directory is that user's, links lead it nowhere; a refusal says whose a file is. */
#include "common/files/file_owner.h"

#include "common/bus/local/bus_local_segment.h"
#include "line_file_fixture.h"

#include <grp.h>
#include <sys/wait.h>

enum { USER = 65534, GROUP = 65533 };

static int owned_setup(void **state)
{
	return scratch_setup(state) == 0 && (geteuid() != 0 || chown(*state, USER, GROUP) == 0) ? 0 : -1;
}

static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void assert_owner(const char *path, uid_t user, gid_t group)
{
	struct stat about;
	assert_int_equal(0, lstat(path, &about));
	assert_int_equal(user, about.st_uid);
	assert_int_equal(group, about.st_gid);
}

static void what_root_makes_is_of_the_directory_s_owner(void **state)
{
	need_root();
	const char *path = in(state, "made");
	int fd = weir_file_make(path, O_RDWR, 0640);
	assert_true(fd >= 0);
	close(fd);
	assert_owner(path, USER, GROUP);

	/* the files of a state, by those who make them */
	assert_int_equal(WEIR_OK, weir_directory_make(in(state, "one/two"), NULL));
	assert_owner(in(state, "one"), USER, GROUP);
	assert_owner(in(state, "one/two"), USER, GROUP);
	assert_int_equal(WEIR_OK, weir_durable_write(in(state, "one/two/durable"), "x", 1, NULL));
	assert_owner(in(state, "one/two/durable"), USER, GROUP);
	struct weir_directory_lock lock;
	assert_int_equal(WEIR_OK, weir_directory_lock(*state, &lock, NULL));
	weir_directory_unlock(&lock);
	assert_owner(in(state, "lock"), USER, GROUP);
	close_file(open_file(in(state, "lines"), 0, 0));
	assert_owner(in(state, "lines"), USER, GROUP);
	struct weir_bus_segment_header header = {.partitions = 1, .next_offsets = (uint64_t[]){0}};
	struct weir_bus_segment *segment;
	assert_int_equal(WEIR_OK, weir_bus_segment_create(in(state, "one"), &header, &segment, &fd, NULL));
	close(fd);
	weir_bus_segment_free(segment);
	char name[WEIR_PATH_BYTES];
	assert_int_equal(WEIR_OK, weir_bus_segment_path(in(state, "one"), 0, name, NULL));
	assert_owner(name, USER, GROUP);
}

static void what_is_there_keeps_its_owner_and_links_lead_nowhere(void **state)
{
	need_root();
	const char *kept = in(state, "kept"), *link = in(state, "link"), *elsewhere = in(state, "roots");
	put(kept, "kept");
	int fd = weir_file_make(kept, O_WRONLY, 0640);
	assert_true(fd >= 0);
	close(fd);
	assert_owner(kept, 0, getegid());
	assert_file(kept, "kept");
	assert_int_equal(-1, weir_file_make(kept, O_WRONLY | O_EXCL, 0640));
	assert_int_equal(EEXIST, errno);

	assert_int_equal(0, mkdir(elsewhere, 0700));
	const char *target = in(state, "roots/target"), *folder = in(state, "folder");
	assert_int_equal(0, symlink(target, link));
	fd = weir_file_make(link, O_WRONLY, 0640);
	assert_true(fd >= 0);
	close(fd);
	assert_owner(target, 0, getegid());
	assert_int_equal(0, symlink(elsewhere, folder));
	fd = weir_file_make(in(state, "folder/file"), O_WRONLY, 0640);
	assert_true(fd >= 0);
	close(fd);
	assert_owner(in(state, "roots/file"), 0, getegid());
	assert_int_equal(-1, weir_file_make(in(state, "none/file"), O_WRONLY, 0640));
	assert_int_equal(ENOENT, errno);
}

/* In a process of that user. */
static void refuse_as_user(void **state, const char *path, const char *expected)
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct weir_error error = {.text = ""};
		if (setgid(GROUP) != 0 || setuid(USER) != 0)
			_exit(1);
		bool refused = open(path, O_RDWR) < 0 && weir_file_refused(&error, "cannot open", path) == WEIR_IO;
		if (!refused || strstr(error.text, expected) == NULL)
			fprintf(stderr, "%s\n", error.text);
		_exit(!refused || strstr(error.text, expected) == NULL);
	}
	assert_int_equal(child, waitpid(child, &status, 0));
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	(void)state;
}

static void a_refusal_says_whose_it_is_and_what_to_do(void **state)
{
	need_root();
	char expected[1024];
	const char *path = in(state, "roots"), *folder = in(state, "closed");
	put(path, "x");
	assert_int_equal(0, chmod(path, 0640));
	snprintf(expected, sizeof expected,
	         "Permission denied: it belongs to root, and this process runs as nobody: chown -R nobody %s",
	         (const char *)*state);
	refuse_as_user(state, path, expected);
	assert_int_equal(0, mkdir(folder, 0700));
	snprintf(expected, sizeof expected,
	         ": %s belongs to root, and this process runs as nobody: run it as root, or chown -R nobody %s", folder,
	         folder);
	refuse_as_user(state, in(state, "closed/file"), expected);
	refuse_as_user(state, in(state, "none"), "none: No such file or directory");
}

/* In a process of that user. */
static void unread_as_user(const char *path, const char *expected)
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct weir_error error = {.text = ""};
		if (setgroups(0, NULL) != 0 || setgid(GROUP) != 0 || setuid(USER) != 0)
			_exit(1);
		bool refused = open(path, O_RDONLY) < 0 && weir_file_unreadable(&error, path) == WEIR_IO;
		if (!refused || strstr(error.text, expected) == NULL)
			fprintf(stderr, "%s\n", error.text);
		_exit(!refused || strstr(error.text, expected) == NULL);
	}
	assert_int_equal(child, waitpid(child, &status, 0));
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void who_may_read_a_log_is_said(void **state)
{
	need_root();
	char expected[1024];
	const char *path = in(state, "log"), *folder = in(state, "logs"), *within = in(state, "logs/log");
	const struct group *group = getgrnam("adm");
	if (group == NULL)
		skip();
	put(path, "x");
	assert_int_equal(0, chown(path, 0, group->gr_gid));
	assert_int_equal(0, chmod(path, 0640));
	unread_as_user(path,
	               "Permission denied: it belongs to root, group adm, mode 0640, and this process runs as nobody: "
	               "usermod -aG adm nobody, and start it again");
	assert_int_equal(0, chmod(path, 0600));
	unread_as_user(
		path, "mode 0600, and this process runs as nobody: let a group read it that nobody is in (chgrp, chmod g+r)");
	assert_int_equal(0, mkdir(folder, 0750));
	put(within, "x");
	assert_int_equal(0, chown(folder, 0, group->gr_gid));
	snprintf(expected, sizeof expected,
	         ": %s belongs to root, group adm, mode 0750, and this process runs as nobody: usermod", folder);
	unread_as_user(within, expected);
	unread_as_user(in(state, "none"), "none: No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_root_makes_is_of_the_directory_s_owner, owned_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(what_is_there_keeps_its_owner_and_links_lead_nowhere, owned_setup,
	                                    scratch_teardown),
		cmocka_unit_test_setup_teardown(a_refusal_says_whose_it_is_and_what_to_do, owned_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(who_may_read_a_log_is_said, owned_setup, scratch_teardown),
	};
	return cmocka_run_group_tests_name("file_owner", tests, NULL, NULL);
}
