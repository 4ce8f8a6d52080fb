import{a as o,b as r}from"./chunk-EYBXGHIS.js";import"./chunk-RWOHMXR7.js";import"./chunk-IMS57PPJ.js";import"./chunk-AGF42KRU.js";export{r as Uploads,o as fileSize};
