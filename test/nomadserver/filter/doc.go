// Package filter reads the filter expressions of Nomad's lists and decides which rows
// they let through.
//
// In come an expression, such as Meta["tuned"] == "yes" and Status != dead, and rows;
// out come true and false, or an error that says what is wrong with the expression or
// that a row has no such field. It knows the operators ==, !=, in, not in, contains,
// not contains, is empty, is not empty, matches, not matches, and, or, not and
// parentheses. It never changes a row.
package filter
