/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing array behind a mutex: policies change a few times a day, and
 * workers look a version up only when their log names a new one. Of a history
 * of years few are, so rules are compiled when they are first asked for.
 */
#include "limiter/lane/rulebook.h"

#include "common/base/alloc.h"

#include <pthread.h>
#include <stdlib.h>

struct entry {
	struct weir_policy *policy;
	struct rules *rules; /* NULL: nobody has asked for them */
};

struct rulebook {
	pthread_mutex_t lock;
	struct entry *entries; /* by version, ascending */
	size_t count;
};

struct rulebook *rulebook_new(void)
{
	struct rulebook *book = weir_alloc(1, sizeof *book);
	pthread_mutex_init(&book->lock, NULL);
	return book;
}

void rulebook_free(struct rulebook *book)
{
	if (book == NULL)
		return;
	for (size_t i = 0; i < book->count; i++) {
		rules_free(book->entries[i].rules);
		weir_policy_free(book->entries[i].policy);
	}
	free(book->entries);
	pthread_mutex_destroy(&book->lock);
	free(book);
}

static struct entry *find(const struct rulebook *book, uint64_t version)
{
	for (size_t i = book->count; i-- > 0;)
		if (book->entries[i].policy->version == version)
			return &book->entries[i];
	return NULL;
}

/* rules_new() takes all policies so far, the newest last. */
static struct rules *compile(const struct rulebook *book, const struct entry *newest)
{
	size_t count = (size_t)(newest - book->entries) + 1;
	const struct weir_policy **policies = weir_alloc(count, sizeof(const struct weir_policy *));
	for (size_t i = 0; i < count; i++)
		policies[i] = book->entries[i].policy;
	struct rules *rules = rules_new(policies, count);
	free(policies);
	return rules;
}

static enum weir_status add_locked(struct rulebook *book, uint64_t version, struct weir_span text,
                                   struct weir_error *error)
{
	if (find(book, version) != NULL)
		return WEIR_OK;
	const struct weir_policy *last = book->count > 0 ? book->entries[book->count - 1].policy : NULL;
	if (last != NULL && version < last->version)
		return weir_fail(error, WEIR_INVALID, "policy %llu is missing, although policy %llu exists",
		                 (unsigned long long)version, (unsigned long long)last->version);
	struct weir_policy *policy;
	enum weir_status status = weir_policy_decode(version, text.at, text.length, &policy, error);
	if (status != WEIR_OK)
		return status;
	book->entries = weir_realloc(book->entries, book->count + 1, sizeof *book->entries);
	book->entries[book->count++] = (struct entry){.policy = policy};
	return WEIR_OK;
}

enum weir_status rulebook_add(struct rulebook *book, uint64_t version, struct weir_span text, struct weir_error *error)
{
	pthread_mutex_lock(&book->lock);
	enum weir_status status = add_locked(book, version, text, error);
	pthread_mutex_unlock(&book->lock);
	return status;
}

const struct rules *rulebook_rules(struct rulebook *book, uint64_t version)
{
	pthread_mutex_lock(&book->lock);
	struct entry *entry = find(book, version);
	if (entry != NULL && entry->rules == NULL)
		entry->rules = compile(book, entry);
	const struct rules *rules = entry != NULL ? entry->rules : NULL;
	pthread_mutex_unlock(&book->lock);
	return rules;
}

const struct weir_policy *rulebook_policy(struct rulebook *book, uint64_t version)
{
	pthread_mutex_lock(&book->lock);
	const struct entry *entry = find(book, version);
	const struct weir_policy *policy = entry != NULL ? entry->policy : NULL;
	pthread_mutex_unlock(&book->lock);
	return policy;
}

uint64_t rulebook_newest(struct rulebook *book)
{
	pthread_mutex_lock(&book->lock);
	uint64_t version = book->count > 0 ? book->entries[book->count - 1].policy->version : 0;
	pthread_mutex_unlock(&book->lock);
	return version;
}
