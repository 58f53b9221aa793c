// Package checkpoint keeps the state of a workload in one file.
//
// In come a path, a header that says which work the state belongs to, and the
// state as bytes; out comes a file that is either whole or not there. A file that
// was cut short or changed is refused, never half read. It does not know what the
// state means.
package checkpoint
