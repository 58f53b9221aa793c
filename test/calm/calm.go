package calm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	exporterapi "pitchpipe/exporter/api"
)

// Quieten takes the columns that tell of others out of a window, and when the lines of
// its marks were read: the exporter is late where others keep the machine busy.
func Quieten(w *exporterapi.Window) {
	for _, s := range w.Samples {
		delete(s.Values, exporterapi.ColNodeBusy)
		delete(s.Values, exporterapi.ColNodeSteal)
		delete(s.Values, exporterapi.ColCPUPressure)
		if s.Mark != nil {
			s.Mark.Time = time.Time{}
		}
	}
}

// Serve listens on a Unix socket and passes on to the exporter's, until ctx ends. It
// asks as its own user, so that the exporter shows what that user may see.
func Serve(ctx context.Context, socket, exporter string) error {
	var dialer net.Dialer
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", exporter)
	}}
	defer transport.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "exporter"}) },
		Transport:      transport,
		ModifyResponse: soothe,
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// soothe takes what others do on the node out of an answer with samples.
func soothe(r *http.Response) error {
	if r.StatusCode != http.StatusOK || !strings.HasSuffix(r.Request.URL.Path, "/window") {
		return nil
	}
	var w exporterapi.Window
	if err := errors.Join(json.NewDecoder(r.Body).Decode(&w), r.Body.Close()); err != nil {
		return fmt.Errorf("the exporter's answer: %w", err)
	}
	Quieten(&w)
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}
