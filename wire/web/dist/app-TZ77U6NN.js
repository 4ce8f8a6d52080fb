import{cd as r}from"./chunk-UXYZ5QGE.js";r();
