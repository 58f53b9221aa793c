// Package nearest finds the known word that a mistyped one probably meant.
//
// Input: a word and the words that are known at its place. Output: the
// nearest of them, or nothing where none is near. It never decides what happens
// then: a suggestion stands in an error and is never applied.
package nearest
