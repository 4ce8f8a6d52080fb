import{a as o,b as r}from"./chunk-EEYQ3PTC.js";import"./chunk-BQJJFHAK.js";export{r as Uploads,o as fileSize};
