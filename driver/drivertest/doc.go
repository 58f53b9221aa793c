// Package drivertest is the conformance suite that every driver must pass: what
// the contract of package driver says, as sentences that can fail.
//
// Input: a function that makes a Harness: a driver that runs until the test
// ends, and a way to turn an abstract Behaviour into a job of that driver. Output: failures of the test. The suite never looks inside a driver, and never
// waits by the wall clock where the Harness brings its own clock.
package drivertest
