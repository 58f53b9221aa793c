// Package evaluatetest is what the tests of the evaluations share: where recorded runs
// are. Input: names of files; output: tables, or a test that is skipped and says why.
// It never copies recorded runs.
package evaluatetest
