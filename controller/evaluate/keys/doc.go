// Package keys names every key of the JSON that an evaluation prints, and says what it
// means. The page of them is made from it, and a test holds them to what is encoded, so
// that no key changes its name unseen. It computes nothing.
package keys
