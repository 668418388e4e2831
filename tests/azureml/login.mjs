// Issues tokens: the token endpoint of Microsoft Entra, and the managed identities of App Service and of a virtual
// machine.
import { createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";

const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

export class Login {
    /** settings: {tenant, clientId, secret, federated, msiHeader}; now gives the time in milliseconds. */
    constructor(settings, now) {
        Object.assign(this, { settings, now, lifetime: 3600, valid: 1, key: randomBytes(32) });
        this.devices = new Map();
    }

    /** From now on the tokens that are out are refused. */
    revoke() {
        this.valid += 1;
    }

    issue(audience, tenant) {
        const now = Math.floor(this.now() / 1000);
        const claims = { aud: audience, iss: `https://sts.windows.net/${tenant}/`, tid: tenant, iat: now, nbf: now,
            exp: now + this.lifetime, appid: this.settings.clientId, oid: "11111111-2222-3333-4444-555555555555",
            generation: this.valid, uti: randomUUID() };
        const text = `${encode({ typ: "JWT", alg: "HS256" })}.${encode(claims)}`;
        return `${text}.${this.sign(text)}`;
    }

    sign(text) {
        return createHmac("sha256", this.key).update(text).digest("base64url");
    }

    /** Why a token is refused, {code, message}; undefined: it is good. */
    refusal(token, audience) {
        const [head, body, signature = ""] = token.split(".");
        const wanted = Buffer.from(this.sign(`${head}.${body}`));
        const given = Buffer.from(signature);
        if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) {
            return { code: "InvalidAuthenticationToken", message: "The access token is invalid." };
        }
        const claims = JSON.parse(Buffer.from(body, "base64url"));
        if (claims.exp * 1000 <= this.now() || claims.generation !== this.valid) {
            return { code: "ExpiredAuthenticationToken", message: "The access token expiry UTC time is in the past." };
        }
        if (claims.aud !== audience) {
            return { code: "InvalidAuthenticationTokenAudience",
                message: `The access token has been obtained for the wrong audience or `
                + `resource '${claims.aud}'. It should exactly match '${audience}'.` };
        }
        if (claims.tid !== this.settings.tenant) {
            return { code: "InvalidAuthenticationTokenTenant", message: "The access token is from the wrong issuer "
                + `'${claims.iss}'. It must match the tenant '${this.settings.tenant}' `
                + `associated with this subscription.` };
        }
        return undefined;
    }

    error(status, code, number, text) {
        const id = randomUUID();
        return { status, body: { error: code, error_description: `AADSTS${number}: ${text}\r\nTrace ID: ${id}`,
            error_codes: [number], timestamp: new Date(this.now()).toISOString().replace("T", " ").replace(/\.\d+/, ""),
            trace_id: id, correlation_id: id, error_uri: `https://login.microsoftonline.com/error?code=${number}` } };
    }

    token(form, tenant) {
        const audience = (form.get("scope") ?? "").split(" ")[0].replace(/\/\.default$/, "");
        const answer = { token_type: "Bearer", expires_in: this.lifetime, ext_expires_in: this.lifetime,
            access_token: this.issue(audience, tenant) };
        if ((form.get("scope") ?? "").includes("offline_access") || form.get("grant_type") === "refresh_token") {
            answer.refresh_token = `refresh-${this.valid}`;
        }
        return { status: 200, body: answer };
    }

    /** Answers a request for the authority; undefined: there is nothing like that here. */
    answer(method, url, headers, body) {
        if (method === "GET" && /^\/(?:msi|metadata\/identity\/oauth2)\/token$/.test(url.pathname)) {
            return this.identity(url, headers);
        }
        const [, tenant, what] = /^\/([^/]+)\/oauth2\/v2\.0\/(token|devicecode)$/.exec(url.pathname) ?? [];
        if (method !== "POST" || !what) {
            return undefined;
        }
        const form = new URLSearchParams(body);
        if (headers["content-type"]?.split(";")[0] !== "application/x-www-form-urlencoded") {
            return this.error(400, "invalid_request", 900144,
                "The request body must contain the parameter: 'grant_type'.");
        }
        if (!this.settings.tenants.includes(tenant) && !["organizations", "common"].includes(tenant)) {
            return this.error(400, "invalid_request", 90002,
                `Tenant '${tenant}' not found. Check to make sure you have `
                + "the correct tenant ID and are signing into the correct cloud.");
        }
        const home = this.settings.tenants.includes(tenant) ? tenant : this.settings.tenant;
        return what === "devicecode" ? this.device(form) : this.grant(form, home);
    }

    grant(form, tenant) {
        const { clientId, secret, federated } = this.settings;
        switch (form.get("grant_type")) {
        case "client_credentials":
            if (form.get("client_id") !== clientId) {
                return this.error(400, "unauthorized_client", 700016,
                    `Application with identifier '${form.get("client_id")}' `
                    + "was not found in the directory.");
            }
            if (form.has("client_assertion") ? form.get("client_assertion") !== federated
                || form.get("client_assertion_type") !== "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
                : form.get("client_secret") !== secret) {
                return this.error(401, "invalid_client", 7000215,
                    "Invalid client secret provided. Ensure the secret being "
                    + "sent in the request is the client secret value, not the client secret ID.");
            }
            return this.token(form, tenant);
        case "urn:ietf:params:oauth:grant-type:device_code":
            return this.poll(form, tenant);
        case "refresh_token":
            return form.get("refresh_token") === `refresh-${this.valid}` ? this.token(form, tenant)
                : this.error(400, "invalid_grant", 700082, "The refresh token has expired due to inactivity.");
        default:
            return this.error(400, "unsupported_grant_type", 70003, `The grant type '${form.get("grant_type")}' is not `
                + "supported.");
        }
    }

    device(form) {
        const code = randomUUID();
        this.devices.set(code, { polls: 0, scope: form.get("scope") });
        return { status: 200, body: { user_code: "YZMYLD4K", device_code: code, expires_in: 900, interval: 1,
            verification_uri: "https://microsoft.com/devicelogin",
            message: "To sign in, use a web browser to open the page https://microsoft.com/devicelogin and enter the "
                + "code YZMYLD4K to authenticate." } };
    }

    poll(form, tenant) {
        const device = this.devices.get(form.get("device_code"));
        if (!device) {
            return this.error(400, "bad_verification_code", 70018, "Bad or unknown verification code.");
        }
        device.polls += 1;
        if (device.polls < 2) {
            return this.error(400, "authorization_pending", 70016, "The user has not typed the code yet.");
        }
        form.set("scope", device.scope);
        return this.token(form, tenant);
    }

    identity(url, headers) {
        const managed = url.pathname === "/msi/token";
        if (managed ? headers["x-identity-header"] !== this.settings.msiHeader : headers.metadata !== "true") {
            return { status: 400, body: { error: "invalid_request", error_description: "Required metadata header not "
                + "specified" } };
        }
        const begin = Math.floor(this.now() / 1000);
        return { status: 200, body: { access_token: this.issue(url.searchParams.get("resource").replace(/\/$/, ""),
            this.settings.tenant), refresh_token: "", expires_in: String(this.lifetime),
        expires_on: String(begin + this.lifetime), not_before: String(begin),
        resource: url.searchParams.get("resource"), token_type: "Bearer" } };
    }
}
