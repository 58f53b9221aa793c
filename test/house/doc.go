// Package house holds the rules of the house as tests: which package may import
// which, what a pure package may not touch, that every package says what it is
// for, and that the files around the code agree with it.
//
// In comes the tree of the repository as it lies on the disk; out comes a failing
// test with the file, the rule and its reason. The package never changes a file
// and nothing imports it.
package house
