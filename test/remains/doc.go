// Package remains tells what tests have left behind whose process was killed: private
// clusters in folders of their own, each with the process that it belongs to.
//
// In comes a folder, out comes whether somebody will ever clear it away; in come the
// names of folders, out goes each whose owner has died to who can clear it away. It looks
// at no folder of another user, and removes nothing itself.
package remains
