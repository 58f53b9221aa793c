// Package table prints what tuning brought to jobs that ran untuned, were met for the
// first time, and returned.
//
// In come jobs as the controller tells of them, with what was measured outside of it;
// out comes text. It judges nothing and reads nothing.
package table
