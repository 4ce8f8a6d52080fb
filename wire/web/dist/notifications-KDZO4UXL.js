import{a as o,b as r}from"./chunk-QU5DOWIU.js";import"./chunk-AKYIKX4A.js";import"./chunk-5MQY7JCS.js";import"./chunk-NIZ6D3DO.js";export{r as NotificationFields,o as Notifications};
