import{a as o,b as r}from"./chunk-NFEHSWQ7.js";import"./chunk-MKSVHBFJ.js";import"./chunk-ZGBGCCYL.js";import"./chunk-UIWQWYHT.js";export{r as NotificationFields,o as Notifications};
