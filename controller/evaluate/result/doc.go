// Package result is the one form of what an evaluation finds: rows, a summary, and for
// each key its name, meaning and place in the printed table, as tags of its field.
//
// In go structs of figures; out come aligned text and JSON, in which a figure that is
// unknown is null. Each runs the independent parts of an evaluation on all processors.
//
// It never computes a finding, and never prints what is missing as a zero.
package result
