// Package cleanup finds what tests left behind when their process was killed: private
// clusters in folders of their own, each with the process that owns it.
//
// In: a pattern of folders. Out: each folder whose owner has died, to the caller, who
// removes it. It never looks at another user's folders and removes nothing itself.
package cleanup
