import{tb as r}from"./chunk-63QWCXEQ.js";r();
