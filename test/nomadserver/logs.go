package nomadserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hashicorp/nomad/api"
)

// How often a followed log is looked at, and how often an idle one shows that it lives.
const (
	logPoll  = 50 * time.Millisecond
	logAlive = time.Second
)

// allocLogs sends what a task wrote, as frames of JSON or plain. A followed log does
// not end when the task does: who reads it has to look at the allocation.
func allocLogs(c *call) error {
	q, err := c.logQuery()
	if err != nil {
		return err
	}
	file, err := os.Open(q.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if file != nil {
		defer file.Close() //nolint:errcheck // it was only read
		if _, err := file.Seek(q.seek(file), io.SeekStart); err != nil {
			return err
		}
	}
	c.w.Header().Set("Content-Type", q.contentType())
	c.w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(c.w).Flush
	idle := time.Now()
	for {
		text, at, err := chunk(file)
		switch {
		case err != nil:
			c.s.opts.Logger.Error("a log could not be read", "error", err)
			return nil
		case len(text) > 0:
			if q.send(c.w, api.StreamFrame{Data: text, File: q.name, Offset: at}) != nil {
				return nil
			}
			idle = time.Now()
		case !q.follow:
			return nil
		case time.Since(idle) >= logAlive:
			if q.send(c.w, api.StreamFrame{}) != nil {
				return nil
			}
			idle = time.Now()
		}
		if flush() != nil {
			return nil
		}
		if len(text) > 0 {
			continue
		}
		select {
		case <-c.r.Context().Done():
			return nil
		case <-time.After(logPoll):
		}
	}
}

// chunk reads what is there, and says where it ended.
func chunk(file *os.File) ([]byte, int64, error) {
	if file == nil {
		return nil, 0, nil
	}
	buf := make([]byte, 64<<10)
	n, err := file.Read(buf)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	at, err := file.Seek(0, io.SeekCurrent)
	return buf[:n], at, err
}

// logQuery is what a request for a log asks.
type logQuery struct {
	path, name    string
	follow, plain bool
	fromEnd       bool
	offset        int64
}

func (q logQuery) contentType() string {
	if q.plain {
		return "text/plain"
	}
	return "application/json"
}

func (q logQuery) seek(file *os.File) int64 {
	if !q.fromEnd {
		return q.offset
	}
	info, err := file.Stat()
	if err != nil {
		return 0
	}
	return max(0, info.Size()-q.offset)
}

// send writes a frame; an empty one only shows that the stream lives.
func (q logQuery) send(w io.Writer, f api.StreamFrame) error {
	if q.plain {
		_, err := w.Write(f.Data)
		return err
	}
	if f.Data == nil {
		_, err := io.WriteString(w, "{}")
		return err
	}
	text, err := json.Marshal(struct {
		Data   []byte
		File   string
		Offset int64
	}{f.Data, f.File, f.Offset})
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func (c *call) logQuery() (logQuery, error) {
	q := logQuery{follow: c.truth("follow"), plain: c.truth("plain")}
	task, stream := c.query("task"), c.query("type")
	a, r, err := c.running("read-logs", "read-fs")
	if err != nil {
		return q, err
	}
	if task == "" {
		return q, refuse(http.StatusBadRequest, "must provide task name")
	}
	if stream != "stdout" && stream != "stderr" {
		return q, refuse(http.StatusBadRequest, "must provide log type (stdout/stderr)")
	}
	switch c.query("origin") {
	case "", "start":
	case "end":
		q.fromEnd = true
	default:
		return q, refuse(http.StatusBadRequest, "origin must be start or end")
	}
	if v := c.query("offset"); v != "" {
		if q.offset, err = strconv.ParseInt(v, 10, 64); err != nil {
			return q, refuse(http.StatusBadRequest, "error parsing offset: %v", err)
		}
	}
	if a.Job.LookupTaskGroup(a.TaskGroup) == nil || !hasTask(a, task) {
		return q, refuse(http.StatusBadRequest, "unknown task name %q", task)
	}
	if st := a.TaskStates[task]; st == nil || st.StartedAt.IsZero() {
		return q, refuse(http.StatusNotFound, "task %q not started yet. No logs available", task)
	}
	q.name = fmt.Sprintf("alloc/logs/%s.%s.0", task, stream)
	q.path = filepath.Join(r.dir(), filepath.FromSlash(q.name))
	return q, nil
}

func hasTask(a *api.Allocation, name string) bool {
	for _, t := range a.Job.LookupTaskGroup(a.TaskGroup).Tasks {
		if t.Name == name {
			return true
		}
	}
	return false
}

// folder finds the folder of an allocation that the caller may read, and a path in it.
func (c *call) folder() (path string, err error) {
	_, r, err := c.running("read-fs")
	if err != nil {
		return "", err
	}
	path = filepath.Join(r.dir(), filepath.FromSlash(c.query("path")))
	if rel, err := filepath.Rel(r.dir(), path); err != nil || !filepath.IsLocal(rel) {
		return "", refuse(http.StatusForbidden, "Path escapes the alloc directory")
	}
	return path, nil
}

func fileInfo(info fs.FileInfo) *api.AllocFileInfo {
	return &api.AllocFileInfo{
		Name: info.Name(), IsDir: info.IsDir(), Size: info.Size(), FileMode: info.Mode().String(), ModTime: info.ModTime(),
	}
}

func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return refuse(http.StatusNotFound, "%v", err)
	}
	return err
}

func allocList(c *call) error {
	path, err := c.folder()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return missing(err)
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
	path, err := c.folder()
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return missing(err)
	}
	return c.reply(fileInfo(info), 0)
}

func allocCat(c *call) error { return c.sendFile(0, 0) }

func allocReadAt(c *call) error {
	offset, err := strconv.ParseInt(c.query("offset"), 10, 64)
	if err != nil {
		return refuse(http.StatusBadRequest, "error parsing offset: %v", err)
	}
	limit, err := strconv.ParseInt(c.query("limit"), 10, 64)
	if err != nil {
		limit = 0
	}
	return c.sendFile(offset, limit)
}

// sendFile sends a part of a file. Whatever is wrong with the path is said with
// status 200: a reader cannot tell an error from a file.
func (c *call) sendFile(offset, limit int64) error {
	path, err := c.folder()
	var r *refusal
	if errors.As(err, &r) && r.code == http.StatusForbidden && c.may(c.namespace(), "read-fs") || err == nil {
		c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if err == nil {
			err = copyFile(c.w, path, offset, limit)
		}
		if err != nil {
			_, err = io.WriteString(c.w, err.Error())
		}
		return err
	}
	return err
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
