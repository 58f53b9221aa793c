package knowledge

import "errors"

// Errors that a caller can act on.
var (
	// ErrNotFound means that nothing is stored under this name.
	ErrNotFound = errors.New("not found")

	// ErrLocked means that another process has the file open.
	ErrLocked = errors.New("knowledge is in use by another process")

	// ErrSchema means that the file was written by a newer version of this
	// program, or is not a knowledge file at all. It was not changed.
	ErrSchema = errors.New("knowledge file cannot be read by this version")

	// ErrInvalid means that what was given cannot be stored.
	ErrInvalid = errors.New("invalid entry")

	// ErrDamaged means that the file holds something it should not.
	ErrDamaged = errors.New("knowledge file is damaged")
)
