// Package layout holds the rules of the repository as tests: which package may import
// which, what a pure package may not touch, that every package has one comment, and that
// the pages and scripts agree with the code.
//
// Input: the tree of the repository on disk. Output: a failing test with the file, the rule and
// its reason. It never changes a file, and no package imports it.
package layout
