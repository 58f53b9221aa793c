package move

import "context"

// Store keeps the records of a driver under names, each durable when Save returns. Its
// methods are safe for concurrent use. A durable.Folder is one.
type Store interface {
	Load(ctx context.Context, name string) ([]byte, error) // fs.ErrNotExist where there is none
	Save(ctx context.Context, name string, record []byte) error
	Delete(ctx context.Context, name string) error // nothing where there is none
	List(ctx context.Context) ([]string, error)
}
