// Package table prints what tuning brought to jobs that ran untuned, were met for the
// first time, and returned.
//
// In: jobs as the controller tells of them, with what was measured outside of it.
// Out: text. It judges nothing and reads nothing.
package table
