import{a as o,b as r}from"./chunk-OZ6EFJLR.js";import"./chunk-HIZALV3K.js";export{r as Uploads,o as fileSize};
