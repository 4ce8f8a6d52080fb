//go:build !poison

package park

import "github.com/valyala/fasthttp"

// See poison.go.

func spoil([]byte)                      {}
func spoilRequest(*fasthttp.RequestCtx) {}
func (r *request) spoilUsed()           {}
