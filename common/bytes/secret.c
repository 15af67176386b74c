/* SPDX-License-Identifier: Apache-2.0 */
/* Each byte that was given is looked at, also behind the first that is wrong; so the time tells its length alone. */
#include "common/bytes/secret.h"

bool weir_secret_is(struct weir_span secret, struct weir_span given)
{
	volatile unsigned char different = secret.length != given.length;
	for (uint32_t i = 0; i < given.length; i++)
		different |= (unsigned char)(given.at[i] ^ (i < secret.length ? secret.at[i] : 0));
	return different == 0;
}
