package trials

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"pitchpipe/driver"
)

// ErrNotOurs means that a folder of a search is not a folder, or belongs to somebody else.
var ErrNotOurs = errors.New("not a folder of this search's owner")

// Folder is where a trial keeps its checkpoint.
func Folder(dir, name, search string, trial int) string {
	return filepath.Join(append([]string{dir}, below(name, search, trial)...)...)
}

// below are the folders between the directory of a job and what a trial keeps.
func below(name, search string, trial int) []string {
	flat := strings.NewReplacer("/", "_")
	return []string{flat.Replace(name) + ".search", flat.Replace(search), fmt.Sprintf("trial-%03d", trial)}
}

// makeFolder makes the folder of a trial where the controller runs as its owner. Elsewhere the job makes it.
func makeFolder(folder string, uid uint32) error {
	if int64(os.Geteuid()) != int64(uid) {
		return nil
	}
	err := os.MkdirAll(folder, 0o755)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EROFS) { // as it will be the next time
		return fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	return err
}

// Remove deletes the folder of a trial. The directory of the job belongs to somebody who may
// change it at any moment, so no link below it is followed, and each folder on the way has to
// belong to uid (ErrNotOurs). A missing folder is not an error.
func Remove(dir, name, search string, trial int, uid uint32) error {
	root, err := os.OpenRoot(dir)
	if err == nil {
		err = errors.Join(remove(root, below(name, search, trial), uid), root.Close())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// remove deletes the last folder of a path, and no other.
func remove(parent *os.Root, path []string, uid uint32) (err error) {
	at, err := parent.OpenRoot(path[0])
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil { // a file, or a link that leads away
		return fmt.Errorf("%w: %w", ErrNotOurs, err)
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	opened, err := at.Stat(".")
	if err != nil {
		return err
	}
	named, err := parent.Lstat(path[0])
	if err != nil {
		return err
	}
	stat, known := opened.Sys().(*syscall.Stat_t)
	if !os.SameFile(named, opened) || !known || stat.Uid != uid { // another file: a link was followed
		return fmt.Errorf("%s: %w", filepath.Join(parent.Name(), path[0]), ErrNotOurs)
	}
	if len(path) > 1 {
		return remove(at, path[1:], uid)
	}
	entries, err := fs.ReadDir(at.FS(), ".")
	for _, e := range entries {
		err = errors.Join(err, at.RemoveAll(e.Name()))
	}
	if err != nil {
		return err
	}
	return parent.Remove(path[0]) // empty by now; what took its place stays
}
