"use strict";
/* format.js - numbers, times and states as people read them. */

/* The states, those first that ask for attention. */
const STATES = ["Failed", "Running", "Queued", "Unknown", "Canceled", "Completed"];

const DIGITS = 4; /* of a number, that matter */

/* A whole number with a comma between thousands. Intl would do it, too, but takes as long to begin as a page. */
function wholeText(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/* A number with so many digits; nothing where there is none. */
function numberText(value, digits = DIGITS) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return wholeText(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6))
    return value
      .toExponential(digits - 1)
      .replace(/\.?0+e/, "e")
      .replace("e+", "e");
  return String(Number(value.toPrecision(digits)));
}

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  for (; Math.abs(bytes) >= 1024 && i < units.length - 1; i++) bytes /= 1024;
  return `${i === 0 ? Math.round(bytes) : bytes.toFixed(bytes < 9.95 ? 1 : 0)} ${units[i]}`;
}

/* Values of an axis, by the unit of a chart. */
const UNITS = {
  number: numberText,
  share: (value) => `${Number((value * 100).toPrecision(3))} %`,
  bytes: (value) => `${bytesText(value)}/s`,
};

/* The texts of an axis, of numbers with as many digits as it takes to tell them apart. */
function tickTexts(ticks, text) {
  for (let digits = DIGITS; ; digits++) {
    const texts = ticks.map((v) => (v === null ? null : text(v, digits))),
      shown = texts.filter((t) => t !== null);
    if (new Set(shown).size === shown.length || digits > 3 * DIGITS) return texts;
  }
}

/* As the command line writes it: "42s", "5m00s", "1h20m", "3d04h". */
function durationText(seconds) {
  if (typeof seconds !== "number" || !(seconds >= 0)) return "";
  const s = Math.round(seconds),
    two = (n) => String(n).padStart(2, "0");
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${two(s % 60)}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h${two(Math.floor(s / 60) % 60)}m`;
  return `${Math.floor(s / 86400)}d${two(Math.floor(s / 3600) % 24)}h`;
}

/* Seconds since 1970 of what JSON has: a number of them, or a text such as 2026-11-23T10:58:51Z. */
function unixOf(time) {
  if (typeof time === "number") return time > 0 ? time : null;
  const ms = time ? Date.parse(time) : NaN;
  return Number.isNaN(ms) ? null : ms / 1000;
}

/* A time of this machine's zone, as in the lists of the command line. */
function timeText(unix) {
  if (unix === null || unix === undefined) return "";
  const d = new Date(unix * 1000),
    two = (n) => String(n).padStart(2, "0");
  return (
    `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ` +
    `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`
  );
}

function dayText(unix) {
  return timeText(unix).slice(0, 10);
}

function countText(n, one, many = `${one}s`) {
  return `${wholeText(n)} ${n === 1 ? one : many}`;
}

function base64Bytes(text) {
  return Uint8Array.from(atob(text ?? ""), (c) => c.charCodeAt(0));
}

/* A text of JSON, which is {base64} of one that is not UTF-8. */
function plainText(text) {
  return typeof text === "string" ? text : new TextDecoder().decode(base64Bytes(text?.base64));
}
