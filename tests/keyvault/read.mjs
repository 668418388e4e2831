// Reads a secret with the official client:  TOKEN=... node read.mjs VAULT-URL NAME
import { SecretClient } from "@azure/keyvault-secrets";

const [url, name] = process.argv.slice(2);
const credential = {
    getToken: async () => ({ token: process.env.TOKEN, expiresOnTimestamp: Date.now() + 3600_000 }),
};
// The double is not in the domain that its challenge names.
const client = new SecretClient(url, credential, { disableChallengeResourceVerification: true });
console.log(JSON.stringify(await client.getSecret(name)));
