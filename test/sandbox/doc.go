// Package sandbox runs programs next to a test, such as daemons in a folder, and removes
// what is left of them when the process that started them was killed.
//
// Input: commands, and a description of what belongs to a folder: a variable in the
// environment, control groups, a rule. Output: programs that were built and run, free ports,
// answers that were waited for, and lists of processes, mounts, control groups and folders
// that remain. It never touches another user's folders or a process that does not belong to
// the folder.
package sandbox
