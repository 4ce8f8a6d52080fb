import{a as o,b as r}from"./chunk-HXKNC6GK.js";import"./chunk-YYCZNCAK.js";export{r as Uploads,o as fileSize};
