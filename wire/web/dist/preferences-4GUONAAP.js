import{a as o}from"./chunk-2ZG3QZ3V.js";import"./chunk-AKYIKX4A.js";import"./chunk-5MQY7JCS.js";import"./chunk-NIZ6D3DO.js";export{o as Preferences};
