// SPDX-License-Identifier: MIT

// A proxy on goproxy with a list of hosts, as its users set it up: goproxy PORT HOST...
package main

import (
	"log"
	"net"
	"net/http"
	"os"

	"github.com/elazarl/goproxy"
)

func main() {
	allowed := map[string]bool{}
	for _, host := range os.Args[2:] {
		allowed[host] = true
	}
	proxy := goproxy.NewProxyHttpServer()
	proxy.OnRequest().HandleConnectFunc(
		func(target string, ctx *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
			host, _, err := net.SplitHostPort(target)
			if err != nil || !allowed[host] {
				return goproxy.RejectConnect, target
			}
			return goproxy.OkConnect, target
		})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], proxy))
}
