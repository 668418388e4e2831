// Bodies against the serializer and the mappers of an official client of Azure.
import { createSerializer } from "@azure/core-client";

export function isObject(value) {
    return value !== null && typeof value === "object";
}

export class Mappers {
    /** knownValues(name, parent): the values that a member may have which the serializer takes for any text. */
    constructor(mappers, knownValues) {
        this.mappers = mappers;
        this.knownValues = knownValues;
        this.serializer = createSerializer(mappers, false);
    }

    /** Adds what is wrong with a body, as texts; name is that of a mapper ("JobBase"). */
    check(name, body, problems) {
        const mapper = this.mappers[name];
        try {
            const understood = this.serializer.deserialize(mapper, body, "body");
            compare(body, this.serializer.serialize(mapper, understood, "body"), "body", problems);
        } catch (error) {
            problems.push(error.message);
        }
        this.checkConstraints(mapper, body, "body", problems);
        this.checkKnownValues(body, "body", problems);
    }

    checkKnownValues(value, where, problems) {
        for (const [name, member] of Object.entries(value)) {
            const known = typeof member === "string" && this.knownValues(name, value);
            if (known && !known.includes(member)) {
                problems.push(`${where}.${name} is '${member}', which is none of ${known.join(", ")}`);
            }
            if (isObject(member)) {
                this.checkKnownValues(member, `${where}.${name}`, problems);
            }
        }
    }

    mapperOf(mapper, value) {
        mapper = this.mappers[mapper.type.className] ?? mapper;
        const discriminator = mapper.type.polymorphicDiscriminator;
        if (discriminator && isObject(value)) {
            const { className, uberParent } = mapper.type;
            const kind = value[discriminator.serializedName];
            mapper = this.mappers.discriminators[`${uberParent}.${kind}`]
                ?? this.mappers.discriminators[`${className}.${kind}`] ?? mapper;
        }
        return mapper;
    }

    // Patterns, lengths, limits of numbers, which the serializer looks at only when asked; members that must be there.
    checkConstraints(mapper, value, where, problems) {
        try {
            this.serializer.validateConstraints(mapper, value, where);
        } catch (error) {
            problems.push(error.message);
        }
        if (!isObject(value)) {
            return;
        }
        const { type } = this.mapperOf(mapper, value);
        if (type.name === "Dictionary" || type.name === "Sequence") {
            const element = type.value ?? type.element;
            Object.entries(value).forEach(([k, v]) => this.checkConstraints(element, v, `${where}.${k}`, problems));
        } else if (type.name === "Composite") {
            for (const member of Object.values(type.modelProperties ?? {})) {
                this.checkMember(member, value, where, problems);
            }
        }
    }

    checkMember(member, value, where, problems) {
        const found = find(value, member.serializedName);
        if (found !== undefined) {
            this.checkConstraints(member, found, `${where}.${member.serializedName}`, problems);
        } else if (member.required && !member.readOnly && member.defaultValue === undefined) {
            problems.push(`${where}.${member.serializedName} is missing`);
        }
    }
}

/** A member by its name on the wire, which may be of a flattened object: "properties.count". */
function find(value, name) {
    return name.split(/(?<!\\)\./).reduce(
        (object, part) => (isObject(object) ? object[part.replace("\\.", ".")] : undefined), value);
}

// The body as it was sent and as the serializer understood it, which may have more: defaults.
function compare(sent, understood, where, problems) {
    if (!isObject(sent) || !isObject(understood)) {
        if (sent !== understood) {
            problems.push(`${where} is ${JSON.stringify(sent)}, it should be ${JSON.stringify(understood)}`);
        }
        return;
    }
    for (const name of Object.keys(sent)) {
        if (!(name in understood)) {
            problems.push(`${where}.${name} is not a member that can be sent`);
        } else {
            compare(sent[name], understood[name], `${where}.${name}`, problems);
        }
    }
}
