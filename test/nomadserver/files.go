package nomadserver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/nomad/api"
)

// logPoll is how often a followed log is read.
const logPoll = 50 * time.Millisecond

// allocLogs sends what a task wrote, as plain text. A followed log does not end when the
// task does: its reader has to look at the allocation.
func allocLogs(c *call) error {
	a, r, err := c.running("read-logs|read-fs")
	if err != nil {
		return err
	}
	name, stream := c.query("task"), c.query("type")
	offset, err := strconv.ParseInt("0"+c.query("offset"), 10, 64)
	switch {
	case err != nil || stream != "stdout" && stream != "stderr" || !slices.Contains([]string{"", "start", "end"}, c.query("origin")):
		return refuse(http.StatusBadRequest, "must provide log type (stdout/stderr), origin (start/end) and a whole offset")
	case !slices.ContainsFunc(a.Job.LookupTaskGroup(a.TaskGroup).Tasks, func(t *api.Task) bool { return t.Name == name }):
		return refuse(http.StatusBadRequest, "unknown task name %q", name)
	case a.TaskStates[name] == nil || a.TaskStates[name].StartedAt.IsZero():
		return refuse(http.StatusNotFound, "task %q not started yet. No logs available", name)
	case !c.truth("plain"):
		return refuse(http.StatusNotImplemented, "logs in frames are not known here")
	}
	file, err := os.Open(filepath.Join(r.dir(), "alloc", "logs", name+"."+stream+".0"))
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	if c.query("origin") == "end" {
		info, err := file.Stat()
		if err != nil {
			return err
		}
		offset = max(0, info.Size()-offset)
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "text/plain")
	c.w.WriteHeader(http.StatusOK)
	for {
		_, err := io.Copy(c.w, file)
		if err = errors.Join(err, http.NewResponseController(c.w).Flush()); err != nil || !c.truth("follow") {
			return nil //nolint:nilerr // the client is gone
		}
		select {
		case <-c.r.Context().Done():
			return nil
		case <-time.After(logPoll):
		}
	}
}

// file finds a path in the folder of an allocation.
func (c *call) file() (path string, err error) {
	_, r, err := c.running("read-fs")
	if err != nil {
		return "", err
	}
	rel := filepath.Clean("./" + c.query("path"))
	if !filepath.IsLocal(rel) {
		return "", refuse(http.StatusForbidden, "Path escapes the alloc directory")
	}
	return filepath.Join(r.dir(), rel), nil
}

func fileInfo(info fs.FileInfo) *api.AllocFileInfo {
	return &api.AllocFileInfo{Name: info.Name(), IsDir: info.IsDir(), Size: info.Size(), FileMode: info.Mode().String(), ModTime: info.ModTime()}
}

func allocList(c *call) error {
	path, err := c.file()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return refuse(http.StatusNotFound, "%v", err)
	}
	out := []*api.AllocFileInfo{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			out = append(out, fileInfo(info))
		}
	}
	return c.reply(out, 0)
}

func allocStat(c *call) error {
	path, err := c.file()
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return refuse(http.StatusNotFound, "%v", err)
	}
	return c.reply(fileInfo(info), 0)
}

// allocFile sends a file or a part of it. It says with status 200 that a path is wrong: a
// reader cannot tell an error from a file.
func allocFile(c *call) error {
	path, err := c.file()
	var offset, limit int64
	for name, to := range map[string]*int64{"offset": &offset, "limit": &limit} {
		if v := c.query(name); v != "" && err == nil {
			*to, err = strconv.ParseInt(v, 10, 64)
		}
	}
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := copyFile(c.w, path, offset, limit); err != nil {
		_, _ = fmt.Fprint(c.w, err)
	}
	return nil
}

func copyFile(w io.Writer, path string, offset, limit int64) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	var from io.Reader = f
	if limit > 0 {
		from = io.LimitReader(f, limit)
	}
	_, err = io.Copy(w, from)
	return err
}
