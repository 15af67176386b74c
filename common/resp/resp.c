/* SPDX-License-Identifier: Apache-2.0 */
/* One buffer: what is kept of a text, and 64 KiB beside it. */
#include "common/resp/resp.h"

#include "common/base/alloc.h"
#include "common/resp/resp_number.h"

#include <stdlib.h>

enum { BESIDE_BYTES = 64 << 10, END_BYTES = 2 };

void weir_resp_init(struct weir_resp *resp, uint32_t text_max)
{
	*resp = (struct weir_resp){.text_max = text_max, .room = (size_t)text_max + BESIDE_BYTES};
	resp->buffer = weir_alloc(resp->room, 1);
}

void weir_resp_deinit(struct weir_resp *resp)
{
	free(resp->buffer);
}

void weir_resp_reset(struct weir_resp *resp)
{
	resp->start = resp->end = 0;
	resp->skip = 0;
	resp->depth = 0;
}

char *weir_resp_room(struct weir_resp *resp, size_t *room)
{
	if (resp->start == resp->end) {
		resp->start = resp->end = 0;
	} else if (resp->start > resp->room / 2 || resp->end == resp->room) {
		memmove(resp->buffer, resp->buffer + resp->start, resp->end - resp->start);
		resp->end -= resp->start;
		resp->start = 0;
	}
	*room = resp->room - resp->end;
	return resp->buffer + resp->end;
}

void weir_resp_filled(struct weir_resp *resp, size_t bytes)
{
	resp->end += bytes;
}

static enum weir_status refuse(struct weir_error *error)
{
	return weir_fail(error, WEIR_INVALID, "what answers is no Redis, or speaks another protocol than RESP2");
}

/* The first line of a token, without its type and its end. */
static enum weir_status take_head(const struct weir_resp *resp, struct weir_span *head, struct weir_error *error)
{
	const char *at = resp->buffer + resp->start;
	size_t there = resp->end - resp->start;
	const char *end = memchr(at, '\n', there);
	if (end == NULL)
		return there < BESIDE_BYTES ? WEIR_AGAIN : refuse(error);
	if (end - at < 2 || end[-1] != '\r')
		return refuse(error);
	*head = (struct weir_span){.at = at + 1, .length = (uint32_t)(end - at - 2)};
	return WEIR_OK;
}

/* A text of known length, behind its head. */
static enum weir_status take_text(struct weir_resp *resp, size_t head_bytes, struct weir_resp_token *token,
                                  struct weir_error *error)
{
	uint64_t whole = (uint64_t)token->number;
	size_t kept = whole > resp->text_max ? resp->text_max : (size_t)whole;
	size_t there = resp->end - resp->start - head_bytes, all = kept + (kept == whole ? END_BYTES : 0);
	if (there < all)
		return WEIR_AGAIN;
	const char *at = resp->buffer + resp->start + head_bytes;
	if (kept == whole && (at[kept] != '\r' || at[kept + 1] != '\n'))
		return refuse(error);
	token->kind = WEIR_RESP_TEXT;
	token->text = (struct weir_span){.at = at, .length = (uint32_t)kept};
	token->whole = whole;
	resp->start += head_bytes + all;
	resp->skip = kept == whole ? 0 : whole - kept + END_BYTES;
	return WEIR_OK;
}

static enum weir_status take_token(struct weir_resp *resp, struct weir_resp_token *token, struct weir_error *error)
{
	struct weir_span head = {0};
	enum weir_status status = take_head(resp, &head, error);
	if (status != WEIR_OK)
		return status;
	size_t head_bytes = head.length + 1u + END_BYTES;
	char type = head.at[-1];
	*token = (struct weir_resp_token){.text = head, .whole = head.length};
	if (type != '+' && type != '-' && !weir_resp_number(head, &token->number))
		return refuse(error);
	switch (type) {
	case '+': token->kind = WEIR_RESP_TEXT; break;
	case '-': token->kind = WEIR_RESP_ERROR; break;
	case ':': token->kind = WEIR_RESP_NUMBER; break;
	case '*': token->kind = token->number < 0 ? WEIR_RESP_NIL : WEIR_RESP_LIST; break;
	case '$':
		if (token->number >= 0)
			return take_text(resp, head_bytes, token, error);
		token->kind = WEIR_RESP_NIL;
		break;
	default: return refuse(error);
	}
	resp->start += head_bytes;
	return WEIR_OK;
}

/* Says where a token stands, and where the next one will. */
static enum weir_status place(struct weir_resp *resp, struct weir_resp_token *token, struct weir_error *error)
{
	token->depth = resp->depth;
	token->index = resp->depth > 0 ? resp->open[resp->depth - 1].index : 0;
	if (token->kind == WEIR_RESP_LIST && token->number > 0) {
		if (resp->depth == WEIR_RESP_DEPTH_MAX)
			return refuse(error);
		resp->open[resp->depth].index = 0;
		resp->open[resp->depth++].count = (uint64_t)token->number;
		return WEIR_OK;
	}
	while (resp->depth > 0 && ++resp->open[resp->depth - 1].index == resp->open[resp->depth - 1].count)
		resp->depth--;
	return WEIR_OK;
}

enum weir_status weir_resp_next(struct weir_resp *resp, struct weir_resp_token *token, struct weir_error *error)
{
	size_t there = resp->end - resp->start, skipped = resp->skip < there ? (size_t)resp->skip : there;
	resp->start += skipped;
	resp->skip -= skipped;
	if (resp->skip > 0 || resp->start == resp->end)
		return WEIR_AGAIN;
	enum weir_status status = take_token(resp, token, error);
	return status == WEIR_OK ? place(resp, token, error) : status;
}
