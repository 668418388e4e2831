/* link_proof.c - both sides of a link prove that they know the token of the run, which is never sent. */
#include <string.h>

#include "base/hash.h"
#include "codec/json.h"
#include "node/link_internal.h"

void link_make_secret(char out[LINK_SECRET_TEXT])
{
    uint8_t random[LINK_SECRET_BYTES];

    act_random(random, sizeof(random));
    act_hex(random, sizeof(random), out);
}

bool link_is_secret(const char *text)
{
    return act_is_hex(text, LINK_SECRET_TEXT - 1);
}

char *link_proof(enum link_role role, const char *token, const char *supervisor_nonce, const char *rank_nonce,
                 int64_t rank)
{
    static const char *const roles[] = {[LINK_RANK] = "rank", [LINK_SUPERVISOR] = "supervisor"};
    ACT_AUTOFREE char *text = act_sprintf("%s %s %s %lld", roles[role], supervisor_nonce, rank_nonce, (long long)rank);

    return act_hmac_sha256_base64((const uint8_t *)token, strlen(token), text, strlen(text));
}

bool link_is_proved(const json_t *message, enum link_role role, const char *token, const char *supervisor_nonce,
                    const char *rank_nonce, int64_t rank)
{
    ACT_AUTOFREE char *proof = NULL;

    if (!link_is_secret(supervisor_nonce) || !link_is_secret(rank_nonce))
        return false;
    proof = link_proof(role, token, supervisor_nonce, rank_nonce, rank);
    return act_equal_secrets(codec_json_str(message, "proof", ""), proof);
}
