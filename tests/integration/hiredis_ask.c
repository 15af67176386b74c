/* SPDX-License-Identifier: Apache-2.0 */
/* hiredis asks: hiredis_ask plain PORT KEY [USER PASSWORD], see support/real_clients.py. */
#include <hiredis/hiredis.h>

#include <stdio.h>
#include <stdlib.h>

enum { PASSED_MAX = 12, MANY = 100 };

static redisReply *replied(void *reply, const redisContext *context)
{
	if (reply == NULL) {
		fprintf(stderr, "hiredis: %s\n", context->errstr);
		exit(1);
	}
	return reply;
}

static void print_numbers(redisReply *reply)
{
	for (size_t at = 0; at < reply->elements; at++)
		printf("%s%lld", at == 0 ? "[" : ", ", reply->element[at]->integer);
	printf("]");
	freeReplyObject(reply);
}

static void print_pipeline(redisContext *context, const char *key)
{
	for (int number = 0; number < PASSED_MAX; number++)
		redisAppendCommand(context, "WEIR.ALLOW %s site", key);
	for (int number = 0; number < PASSED_MAX; number++) {
		void *reply = NULL;
		redisGetReply(context, &reply);
		printf("%s%lld", number == 0 ? "[" : ", ", replied(reply, context)->integer);
		freeReplyObject(reply);
	}
	printf("]");
}

int main(int count, char **words)
{
	if (count < 4)
		return 2;
	const char *key = words[3];
	redisContext *context = redisConnect("127.0.0.1", atoi(words[2]));
	if (count > 5)
		freeReplyObject(replied(redisCommand(context, "AUTH %s %s", words[4], words[5]), context));
	printf("{\"check\": ");
	print_numbers(replied(redisCommand(context, "WEIR.CHECK %s site", key), context));
	printf(", \"throttle\": ");
	print_numbers(replied(redisCommand(context, "CL.THROTTLE %s 15 30 60", key), context));
	printf(", \"pipeline\": ");
	print_pipeline(context, key);
	redisReply *refused = replied(redisCommand(context, "WEIR.CHECK %s nozone", key), context);
	printf(", \"error\": \"%.20s\", \"many\": ", refused->str);
	freeReplyObject(refused);
	for (int number = 0; number < MANY; number++) {
		printf("%s", number == 0 ? "[" : ", ");
		print_numbers(replied(redisCommand(context, "WEIR.CHECK %s-%d site", key, number), context));
	}
	printf("]}\n");
	redisFree(context);
	return 0;
}
