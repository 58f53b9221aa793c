// Package certstest makes authorities and certificates for tests.
//
// In come names and times, out go PEM files in a folder of the test. Nothing of it
// is fit for anything but tests.
package certstest
