// Package sacct tells from a scheduler's accounting alone what tuning could bring.
//
// In comes the text that `sacct -P` prints, with its header; out go the jobs,
// their steps merged into them, and a Summary: core-hours allocated and used,
// memory asked for and needed, and the share of core-hours of jobs that return,
// which the tuner could recognise. Every number says of how many jobs it is: a
// field that is empty, or a peak of 0, is missing and not zero.
//
// The package claims nothing. Core-hours that a job did not use could be waiting
// for memory or input that no setting changes, and history holds no comparison.
//
// The package is pure: no I/O, no clock. Lines that are not what sacct prints are left
// out, counted and told with what was expected there; a text of which that are most is
// refused.
package sacct
