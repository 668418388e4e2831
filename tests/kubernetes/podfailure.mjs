// The podFailurePolicy of a Job: what the failure of one of its pods means.

function exitCode({ containerName, operator, values }, pod) {
    const all = [...(pod.status.initContainerStatuses ?? []), ...(pod.status.containerStatuses ?? [])];
    return all.find(({ name, state }) => state?.terminated && state.terminated.exitCode !== 0
        && (containerName === undefined || containerName === null || name === containerName)
        && values.includes(state.terminated.exitCode) === (operator === "In"));
}

const condition = (patterns, pod) => patterns.find(({ type, status }) =>
    pod.status.conditions?.some((one) => one.type === type && one.status === status));

/** {action, message} of the first rule that matches; without one the failure counts. */
export function judge(policy, pod) {
    const { name, namespace } = pod.metadata;
    for (const [index, { action, onExitCodes, onPodConditions }] of (policy?.rules ?? []).entries()) {
        const container = onExitCodes && exitCode(onExitCodes, pod);
        const found = onPodConditions && condition(onPodConditions, pod);
        const rule = `matching ${action} rule at index ${index}`;
        if (container) {
            return { action, message: `Container ${container.name} for pod ${namespace}/${name} failed with exit code `
                + `${container.state.terminated.exitCode} ${rule}` };
        }
        if (found) {
            return { action, message: `Pod ${namespace}/${name} has condition ${found.type} ${rule}` };
        }
    }
    return { action: "Count" };
}
