// Package evaluatetest is what the tests of the evaluations share: where recorded runs
// stand. In go names of files; out come tables, or a test that is skipped and says why.
// It never copies recorded runs.
package evaluatetest
