// Package table prints what tuning brought to jobs that ran untuned, were met for the
// first time, and returned.
//
// Input: jobs as the controller tells of them, with what was measured outside of it.
// Output: text. It judges nothing and reads nothing.
package table
