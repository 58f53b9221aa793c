// Package certstest makes authorities and certificates for tests.
//
// The input is names and times; the output is PEM files in a folder of the test. They are fit
// only for tests.
package certstest
