import{cd as r}from"./chunk-AGF42KRU.js";r();
