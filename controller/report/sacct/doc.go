// Package sacct shows from a scheduler's accounting alone what tuning could bring.
//
// Input: the text of `sacct -P` with its header. Output: the jobs, their steps merged, and a
// Summary: core-hours allocated and used, memory requested and needed, and the share of
// core-hours of recurring jobs. Every number counts the jobs that have it: an empty field, or a
// peak of 0, is missing and not zero.
//
// The package never claims a saving: unused core-hours may wait for memory or input that no
// setting changes. It is pure. Lines that sacct does not print are left out, counted and
// reported; a text with a majority of them is refused.
package sacct
