package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"reflect"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"parley/actors"
)

// serveMeters answers /metrics (Prometheus text) and Go's profiles at an address of their own: they know no login, so
// they must not be where clients are.
func serveMeters(addr string, of *watched) (func() error, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("debug-listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		writeMeters(w, "parley_house", &of.house.Metrics)
		writeMeters(w, "parley_realm", of.house.RealmMeters())
		writeHolds(w, of.house.Holds())
		writeMeters(w, "parley_store", of.store.Metrics())
		writeMeters(w, "parley_http", of.server.Stats())
		of.writeBounds(w)
		writeRuntime(w)
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go s.Serve(l)
	return func() error {
		if err := s.Close(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}, nil
}

// writeMeters writes every number of a struct, named by its fields; a map becomes a label.
func writeMeters(w io.Writer, prefix string, meters any) {
	v := reflect.Indirect(reflect.ValueOf(meters))
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		name, f := prefix+"_"+snake(v.Type().Field(i).Name), v.Field(i)
		switch {
		case f.CanAddr() && f.Type() == reflect.TypeFor[atomic.Int64]():
			fmt.Fprintf(w, "%s %d\n", name, f.Addr().Interface().(*atomic.Int64).Load())
		case f.Type() == reflect.TypeFor[time.Duration]():
			fmt.Fprintf(w, "%s_seconds %g\n", name, time.Duration(f.Int()).Seconds())
		case f.CanInt():
			fmt.Fprintf(w, "%s %d\n", name, f.Int())
		case f.CanUint():
			fmt.Fprintf(w, "%s %d\n", name, f.Uint())
		case f.Kind() == reflect.Map:
			writeLabelled(w, name, f)
		}
	}
}

func writeLabelled(w io.Writer, name string, m reflect.Value) {
	var lines []string
	for _, k := range m.MapKeys() {
		lines = append(lines, fmt.Sprintf("%s{of=\"%v\"} %v\n", name, k.Interface(), m.MapIndex(k).Interface()))
	}
	sort.Strings(lines)
	io.WriteString(w, strings.Join(lines, ""))
}

// writeHolds writes how long each kind of work held its realm: a histogram, and the longest.
func writeHolds(w io.Writer, list []actors.Hold) {
	slices.SortFunc(list, func(a, b actors.Hold) int { return strings.Compare(a.Kind, b.Kind) })
	io.WriteString(w, "# TYPE parley_realm_held_seconds histogram\n")
	for _, k := range list {
		times := int64(0)
		for i, n := range k.Buckets {
			le := "+Inf"
			if times += n; i < len(actors.HoldBounds) {
				le = fmt.Sprint(actors.HoldBounds[i].Seconds())
			}
			fmt.Fprintf(w, "parley_realm_held_seconds_bucket{kind=%q,le=%q} %d\n", k.Kind, le, times)
		}
		fmt.Fprintf(w, "parley_realm_held_seconds_sum{kind=%q} %g\nparley_realm_held_seconds_count{kind=%q} %d\n", k.Kind, k.Total.Seconds(), k.Kind, k.Times)
	}
	io.WriteString(w, "# TYPE parley_realm_held_max_seconds gauge\n")
	for _, k := range list {
		fmt.Fprintf(w, "parley_realm_held_max_seconds{kind=%q} %g\n", k.Kind, k.Max.Seconds())
	}
}

// writeRuntime uses the names Prometheus' own Go client gives these.
func writeRuntime(w io.Writer) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Fprintf(w, "go_goroutines %d\ngo_memstats_heap_inuse_bytes %d\ngo_memstats_heap_alloc_bytes %d\ngo_memstats_stack_inuse_bytes %d\ngo_memstats_sys_bytes %d\ngo_gc_cycles_total %d\ngo_gc_pause_seconds_total %g\n",
		runtime.NumGoroutine(), m.HeapInuse, m.HeapAlloc, m.StackInuse, m.Sys, m.NumGC, time.Duration(m.PauseTotalNs).Seconds())
}

// snake turns CommitNanos into commit_nanos.
func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if unicode.IsUpper(r) {
			if i > 0 && !unicode.IsUpper(rune(s[i-1])) {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
