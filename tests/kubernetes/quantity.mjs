// Quantities as "1500m", "32Gi".
const UNITS = { n: 1e-9, u: 1e-6, m: 1e-3, "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
    Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 };

export function quantity(text) {
    const [, number, unit] = /^([+-]?[0-9.]+(?:[eE][+-]?\d+)?)([A-Za-z]*)$/.exec(String(text));
    return Number(number) * UNITS[unit];
}

/** A number of a resource of that name, as the server would print it. */
export function formatQuantity(name, value) {
    if (name.endsWith("memory")) {
        const [unit, size] = Object.entries(UNITS).filter(([key]) => key.endsWith("i")).reverse().find(
            ([, size]) => value >= size && value % size === 0) ?? ["", 1];
        return `${value / size}${unit}`;
    }
    return Number.isInteger(value) ? String(value) : `${Math.round(value * 1000)}m`;
}
