// Images: those of the table in the settings do not work as they should; all others do, and are this machine's root.
import { SECRET } from "./kinds.mjs";

const DENIED = "pull access denied, repository does not exist or may require authorization: server message: "
    + "insufficient_scope: authorization failed";

/** Whether a pod has the login for the registry of an image. */
function hasLogin(world, pod, image) {
    const [registry] = image.split("/");
    return (pod.spec.imagePullSecrets ?? []).some(({ name }) => {
        const found = world.store.find(SECRET, pod.metadata.namespace, name);
        const config = found?.data?.[".dockerconfigjson"];
        const auth = config && JSON.parse(Buffer.from(config, "base64")).auths?.[registry]?.auth;
        return auth && Buffer.from(auth, "base64").toString().includes(":");
    });
}

/** Why an image cannot be had: {reason, message}, reason as the state of the container that waits for it; undefined:
 *  it can. */
export function imageProblem(world, pod, image) {
    const kind = world.settings.images[image];
    if (kind === "InvalidImageName") {
        return { reason: kind, message: `Failed to apply default image tag "${image}": couldn't parse image name "${
            image}": invalid reference format` };
    }
    return kind === "ErrImagePull" || (kind === "login" && !hasLogin(world, pod, image))
        ? { reason: "ErrImagePull", message: `failed to pull and unpack image "${image}": failed to resolve `
            + `reference "${image}": ${DENIED}` } : undefined;
}
